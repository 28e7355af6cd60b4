"""The places, hours and weather of pictures as data, with their words and their looks.

A layer is a method of the stage with its numbers, or `figure area count low high`: figures of things.py, scattered over an area.
`low` and `high` are the heights of the farthest and the nearest in hundredths of the picture's shorter side.
"""

# A place, its words, and its layers from far to near.
PLACES = """
sea | sea ocean beach coast coastal shore harbor harbour bay surf wave sailing pier island marine gulf cliff |
 ridge 4 9 1.4 8; water 0; ridge 64 9 .8 95 30; blade row 160 1 2.6;
lake | lake river pond reflection fjord stream lagoon |
 ridge 2 15 1.5 10; ridge 6 6 2.4 40; peak row 4 14 28; ridge 4 3 2.2 62; pine row 70 2.6 5; water 6; ridge 93 9 .9 100;
  blade row 300 2 5;
mountains | mountain alps alpine peak summit volcano himalaya everest andes rockies glacier matterhorn fuji |
 ridge 2 15 1.5 10; ridge 10 6 2.5 34; peak row 6 18 42; mist row 3 3 6; ridge 23 8 1.2 50; pine row 40 1.8 4;
  ridge 48 7 1.7 74; pine row 26 4 7; ridge 72 6 2.2 100; blade row 300 1 2.6;
hills | hill valley meadow field countryside farm pasture garden park village prairie vineyard grass landscape nature |
 ridge 2 15 1.5 10; ridge 6 10 2.5 20; ridge 10 9 1.3 34; far row 14 2 4; ridge 32 8 1.7 54; far row 12 3 6; ridge 56 7 2.1 78;
  ridge 80 6 2.5 100; blade row 300 1 2.6;
forest | forest woods wood jungle woodland rainforest grove |
 ridge 2 15 1.5 10; ridge 4 5 1.6 26; pine row 60 5 10; mist row 2 2 4; ridge 26 5 1.6 48; pine row 44 8 16; mist row 2 3 5;
  ridge 50 5 1.6 70; pine row 30 12 22; mist row 2 3 6; ridge 76 5 1.6 100; blade row 300 1 2.6;
desert | desert dune sahara sand egypt oasis canyon mesa |
 ridge 2 12 1.3 8; ridge 6 5 .9 20; dune row 3 5 9; ridge 24 6 1.1 40; dune row 3 8 14; ridge 48 7 1.3 62; dune row 3 12 18;
  ridge 74 8 1.5 84; dune row 2 14 20;
city | city town skyline street downtown metropolis skyscraper tokyo paris london york berlin urban cyberpunk shanghai manhattan |
 ridge 42 0 1 30; tower row 11 26 52; slab row 6 20 40; mist row 3 6 12; ridge 46 0 1 58; spire row 8 22 44; slab row 9 16 36;
  mist row 3 4 8; ridge 50 0 1 90; slab row 10 9 26; tower row 8 10 30; water 52; ridge 90 0 1 100;
"""

# An hour, season or mood, its words, and its colours: four of the sky from the top, the light, far land and near land.
TIMES = """
night | night midnight moon moonlit star starry aurora firework | #040818 #0b1738 #1b3566 #38578a #f7f2d8 #274472 #060b1a
sunset | sunset sundown romantic | #2b2a5e #8d3f7a #f0695a #ffc36b #fff2c4 #a3527a #24183a
dawn | dawn sunrise morning daybreak pastel dreamy soft tender | #4f63a0 #a987b8 #f3a9a0 #ffdcae #fff3d0 #a88fb5 #35355c
dusk | dusk twilight nightfall evening melancholy lonely nostalgic | #101a40 #38397a #9a5f9c #f2a08a #ffe3c2 #6d5a93 #131833
golden | golden warm cozy cosy harvest nostalgia peaceful honey | #5a9db0 #a9c7b0 #f3d692 #ffc266 #fff6d6 #c79a6b #4a3326
day | day noon daylight sunny bright clear cheerful summer rainbow | #2f7fc9 #6fb4e6 #c3e4f5 #eaf6fa #fff7dc #8db9cf #1f5a4a
storm | storm stormy thunder lightning tempest rain rainy overcast | #1d242b #3d4852 #77818a #aab0b0 #e8ecec #6c7880 #171d22
winter | winter snow snowy ice icy frozen arctic polar christmas frost | #5f8fb8 #9dc0da #d6e6f0 #f2f7fa #ffffff #b3cbdc #3d5a70
autumn | autumn fall october november leaf thanksgiving | #6f98b5 #c9cdb8 #f0d6a4 #f7e6c4 #fff2d0 #c98f58 #6b2f1c
spring | spring blossom cherry april may easter blooming bloom | #62aee0 #a9d8ee #dff1ee #fbeef2 #fffbe6 #9ccfae #2f7d4f
neon | neon cyberpunk futuristic synthwave vaporwave retrowave | #0d0524 #34105c #a3217f #ff6f61 #ffe6ff #5a1e78 #0b0420
"""

# Weather, its words, and its layers: behind the place, or in front of it and its things.
WEATHER = """
stars | star starry constellation milky | star sky 110 .6 .2; spark sky 9 .9 .6
sun | | sun light 1 12 17; cloud sky 3 3 8
moon | moon moonlit moonlight lunar | moon light 1 12 17; cloud sky 1 3 8
aurora | aurora borealis | ridge -70 22 1.3 -1; curtain row 16 30 52; ridge -95 18 1.6 -1; curtain row 13 20 40
rainbow | rainbow | rainbow light 1 62 62
fireworks | firework celebration | burst sky 6 14 26
clouds | cloud cloudy overcast sky dreamy storm stormy | cloud sky 7 4 9
place | |
fog | fog foggy mist misty haze hazy smoke eerie haunted mysterious | mist field 8 3 7
rain | rain rainy rainstorm raining shower monsoon storm | drop all 220 2.5 5.5
snow | snow snowing snowfall snowflake blizzard christmas | flake all 230 .4 1.2
birds | bird gull seagull goose geese swallow crow raven | bird sky 7 1 2
"""
# Hours of the night, of lit lamps, and of a low sun; the colours of leaves; the usual hours of some places.
DARK, DIM, LOW = ("night", "neon"), ("dusk", "sunset", "storm"), ("sunset", "dawn", "golden", "dusk")
LEAVES = {"autumn": "#ce5c24", "spring": "#f4b0c8", "winter": "#ced0e8"}
LAND, TIMES_OF_LAND = ["hills", "mountains", "forest", "lake", "sea"], ["day", "golden", "sunset", "dawn", "dusk", "spring"]
USUAL = {"desert": ["golden", "sunset"], "city": ["dusk", "night", "sunset"]}

PHRASES = {"northern lights": "aurora", "christmas tree": "christmas pine", "pine tree": "pine", "palm tree": "palm"}
# Words that only a refusal names, and the figures of places and weather that a refused name also removes.
ONLY_REFUSED = {"sun": ["sun sunshine sunlight"], "trees": ["tree vegetation plant"]}
FIGURES_OF = {
    "trees": "pine far palm tree flower", "pine": "pine far", "clouds": "cloud", "stars": "star spark", "birds": "bird",
    "mountains": "peak", "city": "tower slab spire", "desert": "dune", "fog": "mist", "snow": "winter",
}  # fmt: skip
# The words of a description.
WORDS_FOR = {
    "sea": "by the sea", "lake": "by a lake", "mountains": "in the mountains", "hills": "in the hills", "forest": "in a forest",
    "desert": "in the desert", "city": "in a city by the water", "night": "at night", "sunset": "at sunset", "dawn": "at dawn",
    "dusk": "at dusk", "golden": "in golden light", "day": "by day", "storm": "under a stormy sky", "winter": "in winter",
    "autumn": "in autumn", "spring": "in spring", "neon": "in neon light", "stars": "stars", "sun": "the sun", "moon": "the moon",
    "aurora": "northern lights", "rainbow": "a rainbow", "fireworks": "fireworks", "clouds": "clouds", "fog": "fog",
    "rain": "rain", "snow": "falling snow", "birds": "birds",
}  # fmt: skip
WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
NUMBERS = {"two": 2, "pair": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "many": 7, "village": 5}
COLORS = """
black #20222a red #d8342f orange #f0862c yellow #f2cc2f gold #e0ab2e green #3f9e4d emerald #1f9d6b lime #9acd32
olive #7d8033 teal #1e9a96 turquoise #33c3bd cyan #2cc0e0 blue #2f6fd6 indigo #3d3aa8 navy #1d2b66 purple #8238b8 violet #8a4fd0
lavender #a78be0 magenta #d02fa0 pink #f07aa8 brown #8a5a34 maroon #803428 white #f6f4ee silver #b4bcc6 gray #84888c grey #84888c
"""

# The layers of abstract compositions, and their colours: the ground and then the shapes.
ABSTRACT = [
    "halo all 5 10 40; disc all 7 8 56; rings all 6 12 50; half all 5 14 50; disc all 6 2 9",
    "disc sky 1 40 30; ridge -70 12 1.3 0; ridge -40 12 1.1 20; ridge -10 12 1.5 40; ridge 20 11 1.2 60; ridge 52 10 1.6 90",
]
SCHEMES = [
    "#f4ead7 #e4572e #f3a712 #29335c #669bbc #1b1b2f", "#10142b #f25f5c #ffe066 #247ba0 #70c1b3 #f7fff7",
    "#fdf6ec #264653 #2a9d8f #e9c46a #f4a261 #e76f51", "#1a1423 #b75d69 #eacdc2 #774c60 #372549 #f2e2d2",
    "#eef4ed #134074 #8da9c4 #0b2545 #ef6f6c #f6ae2d", "#fff1e6 #5f0f40 #9a031e #fb8b24 #e36414 #0f4c5c",
]  # fmt: skip
