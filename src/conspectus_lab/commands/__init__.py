"""Commands of the lab, which the command line of `conspectus` finds by their entry points."""
