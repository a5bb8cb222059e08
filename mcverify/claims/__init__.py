"""The claims, a file a theme. A new file here is found by being here."""
