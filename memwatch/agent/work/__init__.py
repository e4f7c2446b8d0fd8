"""What an agent says about its work: experiments, steps, tool calls, files, external calls."""
