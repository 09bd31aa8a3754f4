"""Does this build, on this device, compute what the papers say? `golden` compares with vectors from elsewhere,
`propositions` checks what the theory demands of every variant."""
