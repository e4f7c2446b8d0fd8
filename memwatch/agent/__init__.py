"""What an agent embeds: log writer, tiers, checkpoints, control listener. Stdlib and msgspec only."""
