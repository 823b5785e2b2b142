"""HTTP as the suite speaks it: origins, calls as data, and strict parsers on bytes."""
