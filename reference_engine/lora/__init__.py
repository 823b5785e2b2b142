"""LoRA adapters: read from PEFT directories, kept in memory, added to the rows that ask."""
