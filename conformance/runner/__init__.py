"""Plans a run, drives checks within budgets, replays failures and adds up the verdict."""
