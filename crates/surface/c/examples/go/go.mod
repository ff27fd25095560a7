module tacit.example/rohc

go 1.21
