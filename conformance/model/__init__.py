"""What conformant means: profiles as data, when a rule applies, and how verdicts add up."""
