"""A worker that decides questions with the engine's model, and its HTTP transport."""
