// Command quic-go-peer moves data over quic-go, as tacit-peers does over other stacks: `serve ADDRESS` and
// `fetch ADDRESS --bytes N [--objects N] [--times N]`, by the QUIC performance protocol
// (draft-banks-quic-performance-00): a request is the length of its answer, in 8 bytes.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/big"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	protocol = "perf"
	name     = "localhost"
	module   = "github.com/quic-go/quic-go"
)

// report is the line that a client prints.
type report struct {
	Bytes     int64     `json:"bytes"`
	DurationS float64   `json:"duration_s"`
	TimesS    []float64 `json:"times_s"`
	CPUS      float64   `json:"cpu_s"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "quic-go-peer:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	switch {
	case len(words) == 1 && words[0] == "version":
		return version()
	case len(words) == 2 && words[0] == "serve":
		return serve(words[1])
	case len(words) >= 2 && words[0] == "fetch":
		return fetch(words[1], words[2:])
	default:
		return fmt.Errorf("usage: version | serve ADDRESS | fetch ADDRESS --bytes N [--objects N] [--times N]")
	}
}

func version() error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("built without modules")
	}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			fmt.Println(dependency.Version)
			return nil
		}
	}
	return fmt.Errorf("built without %s", module)
}

// certificate is made by each server for itself; clients check nothing, and need not on one machine.
func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(nil, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

func serve(address string) error {
	own, err := certificate()
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{protocol}}
	listener, err := quic.ListenAddr(address, config, nil)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					return // The client has closed.
				}
				go answer(stream)
			}
		}()
	}
}

// answer sends the bytes that a stream asks for. A client that has left needs none.
func answer(stream *quic.Stream) {
	defer stream.Close()
	var length [8]byte
	if _, err := io.ReadFull(stream, length[:]); err != nil {
		return
	}
	piece := make([]byte, 1<<16)
	for left := binary.BigEndian.Uint64(length[:]); left > 0; {
		written, err := stream.Write(piece[:min(left, uint64(len(piece)))])
		if err != nil {
			return
		}
		left -= uint64(written)
	}
}

func fetch(address string, words []string) error {
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	bytes := flags.Int64("bytes", 0, "bytes of each object")
	objects := flags.Int("objects", 1, "objects of each transfer: the first, then all others at once")
	times := flags.Int("times", 1, "transfers, each over a connection of its own")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if *bytes < 1 || *objects < 1 || *times < 1 || flags.NArg() > 0 {
		return fmt.Errorf("--bytes, --objects and --times are 1 or more, and nothing follows them")
	}
	var all report
	for range *times {
		began := time.Now()
		if err := transfer(address, *bytes, *objects); err != nil {
			return err
		}
		took := time.Since(began).Seconds()
		all.Bytes += *bytes * int64(*objects)
		all.DurationS += took
		all.TimesS = append(all.TimesS, took)
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err == nil {
		all.CPUS = float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

func transfer(address string, bytes int64, objects int) error {
	config := &tls.Config{InsecureSkipVerify: true, ServerName: name, NextProtos: []string{protocol}}
	connection, err := quic.DialAddr(context.Background(), address, config, nil)
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "done")
	if err := get(connection, bytes); err != nil {
		return err
	}
	var group sync.WaitGroup
	failed := make(chan error, objects)
	for range objects - 1 {
		group.Go(func() {
			if err := get(connection, bytes); err != nil {
				failed <- err
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

// get fetches an object.
func get(connection *quic.Conn, bytes int64) error {
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, uint64(bytes))); err != nil {
		return err
	}
	stream.Close()
	read, err := io.Copy(io.Discard, stream)
	if err == nil && read != bytes {
		err = fmt.Errorf("%d of %d bytes came", read, bytes)
	}
	return err
}
