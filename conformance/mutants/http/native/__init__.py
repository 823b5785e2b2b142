"""A right server of native routes (Ollama, TGI, LM Studio), and its mutants."""
