"""What an intervention really did: usage before and after as we measured it, and until when (R13).

    window      what was used over a while: median by time, noise, slope
    verdict     whether a change is an effect, nothing, or the opposite
    rebound     when usage was back where it had been
    effect      one resource around one intervention, looked at again and again until all is known
    around      the next three experiments against the three before
    confounders what else may explain it, in words

Pure: everything is on one axis of microseconds that does not run backwards. Nothing is said
before it was measured, nor of a time in which nobody measured.
"""
