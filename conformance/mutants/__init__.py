"""Faulty engines: a proxy that breaks one rule of any engine at a time, to prove the checks."""
