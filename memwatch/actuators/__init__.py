"""Ways to reach the agent: `actuator` says what each must do, `native` does it over the spool.

native: hold_requests, holds, spool, folder     an agent that runs with `memwatch.agent`
none                                            a source that takes no commands: says why
notify                                          people instead of agents
"""
