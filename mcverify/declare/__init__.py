"""From words to claims: grid, prediction, Claim, the rules it keeps, where claims are found."""
