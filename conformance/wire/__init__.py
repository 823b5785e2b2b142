"""The client side of the wire: targets, channels, calls and what they looked like."""
