"""Faulty workers: a right one behind HTTP with one rule broken each, and the matrix over them."""
