"""From a user's attention function to the scale, and all else, that it applies to q·k."""
