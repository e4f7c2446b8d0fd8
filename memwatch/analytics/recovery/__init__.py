"""If it crashed now: what a recovery would have to do, and how long that takes. Pure.

restarts  what the agent's log tells of its starts
sound     which past ones can be reckoned with
work      what it would have to do          (`Work`, also of one that was done)
costs     what past ones needed for theirs  (`learn`)
estimate  the two together                  (`estimate`: terms and their sum)
grade, plain, memory, errors                what follows from them, for people
"""
