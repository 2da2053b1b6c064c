"""What the headers of frames carry: fields that are fixed or vary, tunnels around the frames, groups of receivers."""
