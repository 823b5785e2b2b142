"""Records of live calls: what happened and what it cost, and not a word of what was said."""
