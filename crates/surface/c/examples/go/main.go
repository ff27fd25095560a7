// ROHC-TCP from Go: compresses the ACKs of one download and restores them. `make go` in crates/surface/c runs it.
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#cgo LDFLAGS: -ltacit -lpthread -ldl -lm
#include "tacit.h"
*/
import "C"

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"
)

func must(code C.int) {
	if code != C.TACIT_OK {
		fmt.Fprintln(os.Stderr, "rohc:", C.GoString(C.tacit_error_text(code)))
		os.Exit(1)
	}
}

// sum is the ones' complement sum of 16-bit words (RFC 1071).
func sum(parts ...[]byte) uint16 {
	total := uint32(0)
	for _, part := range parts {
		for at := 0; at+1 < len(part); at += 2 {
			total += uint32(binary.BigEndian.Uint16(part[at:]))
		}
	}
	for total>>16 != 0 {
		total = total&0xffff + total>>16
	}
	return ^uint16(total)
}

// ack is the n-th pure ACK of a download: IPv4, TCP, no options.
func ack(n uint16) []byte {
	packet := make([]byte, 40)
	copy(packet, []byte{0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1})
	binary.BigEndian.PutUint16(packet[4:], n)
	binary.BigEndian.PutUint16(packet[10:], sum(packet[:20]))
	tcp := packet[20:]
	copy(tcp, []byte{0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0x08, 0, 0, 0, 0, 0})
	binary.BigEndian.PutUint32(tcp[8:], 2896*uint32(n))
	binary.BigEndian.PutUint16(tcp[16:], sum(packet[12:20], []byte{0, 6, 0, 20}, tcp))
	return packet
}

func pointer(bytes []byte) *C.uint8_t {
	return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(bytes)))
}

func main() {
	var config C.tacit_rohc_config
	var compressor *C.tacit_rohc_compressor
	var decompressor *C.tacit_rohc_decompressor
	must(C.tacit_rohc_defaults(&config))
	must(C.tacit_rohc_compressor_new(&config, &compressor))
	defer C.tacit_rohc_compressor_free(compressor)
	must(C.tacit_rohc_decompressor_new(&config, &decompressor))
	defer C.tacit_rohc_decompressor_free(decompressor)

	before, after := 0, 0
	rohc, back := make([]byte, 200), make([]byte, 1500)
	feedback := make([]byte, C.TACIT_ROHC_FEEDBACK)
	for n := uint16(0); n < 1000; n++ {
		packet := ack(n)
		var made, done, answer C.size_t
		must(C.tacit_rohc_compress(compressor, 0, pointer(packet), C.size_t(len(packet)), pointer(rohc), C.size_t(len(rohc)), &made))
		must(C.tacit_rohc_decompress(decompressor, pointer(rohc), made, pointer(back), C.size_t(len(back)), &done,
			pointer(feedback), &answer))
		if !bytes.Equal(back[:done], packet) {
			fmt.Fprintln(os.Stderr, "rohc: another packet")
			os.Exit(1)
		}
		must(C.tacit_rohc_feedback(compressor, pointer(feedback), answer, nil))
		before, after = before+len(packet), after+int(made)
	}
	fmt.Printf("tacit %s: %d bytes became %d, and came back\n", C.GoString(C.tacit_version()), before, after)
}
