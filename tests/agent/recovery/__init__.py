"""Recovery: what it finds in whole, damaged and hostile run directories."""
