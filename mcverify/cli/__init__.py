"""From the command line to runs, tables and exit statuses."""
