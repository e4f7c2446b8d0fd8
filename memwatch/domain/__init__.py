"""Values of the field: records, samples, snapshots, clocks, errors. No input, no output."""
