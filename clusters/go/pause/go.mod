module stoker.dev/clusters/pause

go 1.26.0
