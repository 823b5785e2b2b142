"""What holds for every test."""

from hypothesis import settings

# No test is about time, and on a busy machine a first example may take seconds.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
