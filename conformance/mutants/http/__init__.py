"""Faulty HTTP servers: a right one with one rule broken, and the matrix over them."""
