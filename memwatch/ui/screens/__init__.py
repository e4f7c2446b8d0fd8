"""The dashboard and what lies over it.

dashboard               the panels
listing, listings       a long table over the whole screen: checkpoints, interventions
overlay, dialog, boxes  what lies over either for a moment
"""
