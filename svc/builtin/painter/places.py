"""The places, hours and weather of pictures as data, beside those in places.txt, times.txt and weather.txt."""

# Hours of the night, of lit lamps, and of a low sun; the colours of leaves; the usual hours of some places.
DARK, DIM, LOW = ("night", "neon"), ("dusk", "sunset", "storm"), ("sunset", "dawn", "golden", "dusk")
LEAVES = {"autumn": "#ce5c24", "spring": "#f4b0c8", "winter": "#ced0e8"}
LAND = ["hills", "mountains", "forest", "lake", "sea"]
TIMES_OF_LAND = ["day", "golden", "sunset", "dawn", "dusk", "spring"]
USUAL = {"desert": ["golden", "sunset"], "city": ["dusk", "night", "sunset"]}

PHRASES = {"northern lights": "aurora", "christmas tree": "christmas pine", "pine tree": "pine", "palm tree": "palm"}
# The figures of places and weather that a refused name also removes.
FIGURES_OF = {
    "trees": "pine far palm tree flower", "pine": "pine far", "clouds": "cloud", "stars": "star spark", "birds": "bird",
    "mountains": "peak", "city": "tower slab spire", "desert": "dune", "fog": "mist", "snow": "winter",
}  # fmt: skip
# Numbers in a description, and in a prompt.
WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
NUMBERS = {
    "two": 2, "pair": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "many": 7, "village": 5
}  # fmt: skip
COLORS = """
black #20222a red #d8342f orange #f0862c yellow #f2cc2f gold #e0ab2e green #3f9e4d emerald #1f9d6b lime #9acd32
olive #7d8033 teal #1e9a96 turquoise #33c3bd cyan #2cc0e0 blue #2f6fd6 indigo #3d3aa8 navy #1d2b66 purple #8238b8
violet #8a4fd0 lavender #a78be0 magenta #d02fa0 pink #f07aa8 brown #8a5a34 maroon #803428 white #f6f4ee silver #b4bcc6
gray #84888c grey #84888c
"""

# The layers of abstract compositions, and their colours: the ground and then the shapes.
ABSTRACT = [
    "halo all 5 10 40; disc all 7 8 56; rings all 6 12 50; half all 5 14 50; disc all 6 2 9",
    "disc sky 1 40 30; ridge -70 12 1.3 0; ridge -40 12 1.1 20; ridge -10 12 1.5 40; ridge 20 11 1.2 60; ridge 52 10 "
    "1.6 90",
]
SCHEMES = [
    "#f4ead7 #e4572e #f3a712 #29335c #669bbc #1b1b2f", "#10142b #f25f5c #ffe066 #247ba0 #70c1b3 #f7fff7",
    "#fdf6ec #264653 #2a9d8f #e9c46a #f4a261 #e76f51", "#1a1423 #b75d69 #eacdc2 #774c60 #372549 #f2e2d2",
    "#eef4ed #134074 #8da9c4 #0b2545 #ef6f6c #f6ae2d", "#fff1e6 #5f0f40 #9a031e #fb8b24 #e36414 #0f4c5c",
]  # fmt: skip
