"""What requests are made of: traces, texts and corpora, read as streams."""
