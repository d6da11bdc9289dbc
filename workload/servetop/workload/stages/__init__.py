"""When requests are due: the stages of a load, their draws and their schedule."""
