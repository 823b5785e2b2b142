"""The command line `oe-conform`."""
