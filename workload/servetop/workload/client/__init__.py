"""What a client of a load decides: which requests it may send, and when. Pure: every time is an argument."""
