"""Runtime profiles: what a pinned build of an HTTP server promises, as data."""
