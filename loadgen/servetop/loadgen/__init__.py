"""The load generator: sender processes that send a plan's requests when they are due and report once per tick.

Its parts import only what stands to their right (import-linter checks it):

    worker > sender > transport > request > messages

`worker` starts sender processes and combines several of them; `sender` decides what is sent when, and builds the
reports; `transport` writes requests to sockets and reads responses; `request` holds one request from rendering to
record; `messages` are what the run process and the senders exchange.
"""
