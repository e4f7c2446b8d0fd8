"""Memory in tiers: values, their sizes, how many of them stay, and where the others go."""
