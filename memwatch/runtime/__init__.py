"""Where the layers meet: the session protocol and its two ends, the guard, runs by name.

session    the calls that every viewer makes, live guard and replay alike
protocol   frames, server, client
views      the ring in memory and what a snapshot shows of it
guard      the process that watches one run
runs       catalogue, sockets, one look without a guard
"""
