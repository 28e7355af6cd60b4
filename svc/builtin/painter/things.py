"""The figures of pictures as data, in the notation of figures.py."""

TABLE = """
lighthouse | red | land 46 sea: lighthouse |
  lit?=area !#ffecaa@9 0,83 900,190 900,105; lit?glow !#ffecaa@85 0,83,28,28; &area main:main-10 5.9,74 10.5,0
  &area white 8.97,24.7 9.73,12.3; &area white 7.43,49.3 8.2,37; &area white 5.9,74 6.67,61.7
  area black@22 1,74 5.9,74 10.5,0 2.5,0; &area land-35 8.6,77 8.6,74; &area !#ffecaa 5,88 5,77
  &area main-15 0,98 6.5,88; &area land-35 0,9.5 2.8,7 2.8,0; &area land-35 1.2,54 1.2,50
house | #ecdec6 #ce785c #a0b2be | land 19: house cottage cabin hut home barn farm farmhouse village chalet |
  area brown-30 28,66 28,104 40,104 40,66; ~line haze@35 6,26 34,106 44,128 38,150 56,176; &area main:main-18 60,50 60,-4
  &area maroon 46,94 70,48; snow?&~area !#f4f8fc 0,98 48,97 72,46 42,55 20,50 0,53
  =glow !window@35 33,30,32,32; =area !window 24,40 42,40 42,19 24,19; &area maroon-40 9,35 9,-4
castle | indigo | land 42 mountains: castle palace fortress |
  &area #a09ca6:#726f78 9,70 9,0; =area #96929c:#726f78 12,62 28,62 28,0 12,0; =area main:main-25 10,62 20,92 30,62
  =area #a09ca6:#726f78 37,50 56,50 56,-4 37,-4; =area main:main-25 35,50 46.5,80 58,50; &area #a09ca6:#726f78 11,94 11,0
  &area main:main-25 0,128 13,94; &area #9b97a1:#6a6770 40,36 40,-4; =line #9b97a1 5 14,35 14,40; =line #9b97a1 5 33,35 33,40
  &area !window 1.8,84 1.8,76; =line !window 4 20,54 20,46; area red 0,138 11,134 0,128; &area black 0,21 5,19 8,13 8,-4
pyramid | #e2b46e | land 30 desert: pyramid | area main+12 -95,0 0,100 20,-6; area main-36 95,0 0,100 20,-6
  line black@16 .6 -48,50 10,46 48,50
boat | #96362e | water 27 sea: boat sailboat sail sailing yacht | discs white@30 2,-16,19,1 2,-29,10,1; line main-50 1.6 0,4 0,98
  area white:white-6 2,14 2,94 14,76 27,50 38,16; area white-12 -2,16 -2,88 -11,68 -20,46 -33,14
  ~area main+12:main-35 -42,11 -30,-3 0,-6 32,-3 46,13 0,8
balloon | red orange blue purple | air 30 hills: balloon | &~area main:main-12 0,100 17,94 28,79 30,64 24,47 12,30 5,24 0,24
  &~area #faeeda 0,100 13,94 21,79 23,64 18,47 9,30 3,24 0,24; &~area main:main-12 0,100 8.5,94 13.5,79 14.5,64 11.5,47 6,30 2,24
  ~area black@14 0,100 17,94 28,79 30,64 24,47 5,24 18,64 8,94; line brown 8 0,2 0,10; =line black .6 6,25 4,9
tree~6 | leaf | land 44: tree oak maple blossom cherry | line land-30 11,3 0,-3 0,50
  discs main-28 -27,60,16 -12,52,14 10,54,15 27,62,15 -22,78,15 -4,90,15 17,82,16 0,70,22
  discs main -31,65,12 -14,57,10 8,59,11 24,67,12 -26,82,12 -8,93,12 13,87,12 -3,74,17
  discs main+18@70 -34,69,7 4,63,7 20,72,7 -29,86,7 9,91,8 -8,79,9
pine~3 | land | land 46 forest: pine fir spruce evergreen | line land-30 6 0,0 0,16
  &area main 0,100 10,84 5,86 14,70 7,72 17,56 9,58 20,42 11,44 23,28 12,30 26,12 8,15
  snow?area !#f4f8fc@85 0,101 -10,84 -3,87 -14,70 -4,73 -17,56 -5,60 -20,42 -6,46 -23,28 -7,32 -26,12 -8,19 0,60
palm~2 | green | land 44 sea: palm coconut | ~line brown-20 6,3 0,-2 7,45 22,86; ~area main-10 22,86 2,101 -20,82 -4,92
  ~area main 22,86 4,108 -26,98 -2,100; ~area main-10 22,86 42,101 62,80 46,91; ~area main 22,86 40,109 68,97 46,101
  ~area main-20 22,86 6,86 -8,62 4,78; ~area main-20 22,86 40,88 50,62 41,78; discs brown-35 19,84,3 24,83,3
flower~4 | #e24046 #f6be3c #f082aa #faf0eb #9664d2 | meadow 20 hills: flower poppy daisy tulip sunflower rose |
  ~line green-15 4,3 0,-2 2,50 0,100; =~area green-15 0,10 10,34 22,46 4,34; 9*discs main-8 0,100 0,115,8.5; discs gold 0,100,7.5
cat | #26222c | land 32: cat kitten | ~line main 9,4 18,5 44,2 56,16 50,34 58,48
  &~area main:main-25 0,64 12,58 19,44 27,24 30,6 25,0 0,-1; =area main 4,89 17,107 19.5,80; discs main 0,76,21,18
  =discs !#b2d65c 8.5,77.5,4.6,4.2; =discs black 8.5,77.5,1.4,3.8; =line white@60 .45 6,69 27,65.5; area #d67a80 -2,71 2,71 0,68
fox | #d8682c | land 25 forest: fox | ~area main:main-15 -30,34 -50,42 -78,36 -92,16 -66,14 -42,20
  ~area white -78,36 -92,16 -76,20 -70,28; line main-25 7,5 -20,30 -21,0; line main-25 7,5 19,30 18,0
  ~area main:main-12 -38,44 -10,50 18,52 34,44 28,26 0,24 -30,24; ~area main 16,50 24,70 42,74 56,62 44,46 30,34
  area main-10 24,68 22,94 36,78; area main-10 36,78 44,95 48,74; area main 34,74 52,72 71,57 44,58; discs black 70,57,3 46,65,2
camel | #b98a52 | land 34 desert: camel | line main-20 6,4 -34,44 -38,0; line main-20 6,4 28,44 27,0
  ~area main+8:main-18 -46,60 -38,70 -24,92 -8,70 2,70 16,90 30,68 42,60 38,40 0,34 -40,40
  ~line main 15,8 34,52 56,54 62,76 66,92; ~area main 60,98 72,98 90,88 88,82 72,82 60,86; discs black 74,93,1.8
tower | land | | &area main:main~20 14,94 14,0; line main 1.2 0,94 0,108; panes window -14,94 14,0; line light@22 1 -13,0 -13,94
slab | land | | &area main:main~20 20,90 20,0; &area main 12,96 12,90; panes window -20,90 20,0; line light@22 1 -19,0 -19,90
spire | land | | &area main:main~20 0,100 12,80 12,0; panes window -12,80 12,0; line light@22 1.2 -11.4,0 -11.4,80
peak~3 | land | | area land+14:land+10~45 0,100 -13,86 -23,73 -42,58 -54,43 -76,23 -104,0 14,0 8,14 12,28 3,43 6,58 -2,72 4,86
  area land-18:land-14~45 0,100 10,87 26,73 38,59 57,43 74,24 100,0 14,0 8,14 12,28 3,43 6,58 -2,72 4,86
  area !light+35@92 0,100 -13,86 -23,73 -36,63 -24,52 -11,56 -2,72 4,86; area light+15@92 0,100 10,87 26,73 27,62 14,65 -2,72 4,86
dune~4 | land | | ~area land+12:land+4~25@85 -130,-4 -80,8 -40,22 0,30 6,20 -8,10 20,2 30,-6
  ~area land-24:land-6~25@80 0,30 30,24 70,10 130,-6 30,-6 20,2 -8,10 6,20
far~5 | land | | line land-35 12,6 0,0 0,50; discs main -17,61,19 17,64,19 1,77,20; discs light@13 -22,68,9 -10,86,9
blade~10 | land | | area main -9,-20 30,100 9,-20
star | | | discs !white@75 0,50,50
spark | | | discs !white 0,50,50; glow !light@40 0,50,320,320
sun | | | glow !light@60 0,50,370,370; glow !light+50@55 0,50,105,105; discs !light+50:light 0,50,50
moon | | | glow !light@40 0,50,290,290; discs !light 0,50,50; discs !light-14@70 -17,60,12 15,33,9 10,72,6.5 -8,25,7.5 25,53,5
cloud~4 | cloud | | discs !main+22:main@62 -62,16,30,24 -30,30,38,36 8,42,46 44,24,36,32 78,12,24,18 8,4,99,14 8,-900,3000,900,-1
curtain | #5cf0aa #50dcd2 #aa6ee6 | | glow !main@30 0,50,24,60
rainbow | | | discs !#dc3c3c@42 60,0,100 60,0,97,97,-1; discs !#f0a032@42 60,0,97 60,0,94,94,-1
  discs !#e6dc50@42 60,0,94 60,0,91,91,-1; discs !#5abe64@42 60,0,91 60,0,88,88,-1; discs !#4672dc@42 60,0,88 60,0,85,85,-1
burst | #ff786e #ffd66e #82dcff #c896ff #96f0a0 | | glow !main@40 0,50,62,62; 26*line !main+35@75 .4,1.1 0,50 0,62 0,92
drop | | | line !#e1ebf5@40 4,5 14,100 -14,0
flake | | | discs !white@75 0,50,50
mist | | | glow haze@60 0,0,900,100
bird~9 | | | area land@85 -100,58 -50,70 0,20 50,70 100,58 50,50 0,-4 -50,50
ripple | sky light sky-45 sky-25 | | discs !main@18 0,50,800,50
glint | | | discs !light@55 0,50,430,50
disc | scheme | | discs main+25:main@86 0,50,50
halo | scheme | | discs main@38 0,50,50; discs main 0,50,15
rings | scheme | | discs main@90 0,50,50 0,50,43,43,-1; discs main@90 0,50,37 0,50,31,31,-1; discs main@90 0,50,25 0,50,14,14,-1
half | scheme | | discs main+10:main@92 0,50,50 0,-1000,4000,1050,-1
"""
