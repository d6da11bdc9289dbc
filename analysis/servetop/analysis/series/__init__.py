"""The ticks and columns of a growing run, in bounded memory."""
