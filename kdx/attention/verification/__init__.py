"""Does this build, on this device, compute what the papers say? `properties` checks what every attention must be, and
`golden` compares with vectors from elsewhere.
"""
