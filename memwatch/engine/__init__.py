"""Facts, a policy and an instant to decisions. Pure: the clock is passed in.

tick                                    one step; the order of everything below
facts, state, decision, turn            what goes in, what stays, what comes out, and all at work
judge: levels, hysteresis, soft_limit, pressure     what is so
plans: outlook, budget, cooldown, breaker, trend    which plan is made, or why none
flight, effect                          its steps one after another; whether it helped
holds, retention                        what lasts beyond plans: a pause, what tiers keep
explain, standing                       reasons in one line; where the engine stands, for views
"""
