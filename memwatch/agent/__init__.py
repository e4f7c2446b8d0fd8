"""What an agent embeds: log writer, tiers, checkpoints, control. Stdlib and msgspec only."""
