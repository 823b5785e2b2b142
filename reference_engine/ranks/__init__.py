"""Data-parallel ranks: engines with a scheduler and a cache of their own behind one server."""
