// Command verify checks the vectors of the kit, or a recording of a service's answers.
//
//	verify vectors FOLDER
//	verify answers FILE [FILE …]
package main

import (
	"fmt"
	"os"

	"ledger-trust/conformance/ledgerlog"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: verify vectors FOLDER | verify answers FILE [FILE …]")
		os.Exit(64)
	}
	report := &ledgerlog.Report{}
	for _, path := range os.Args[2:] {
		fmt.Printf("file: %s\n", path)
		if err := run(os.Args[1], path, report); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(66)
		}
	}
	fmt.Printf("go: %d passed, %d failed\n", report.Passed, report.Failed)
	if report.Failed > 0 || report.Passed == 0 {
		os.Exit(1)
	}
}

func run(command, path string, report *ledgerlog.Report) error {
	switch command {
	case "vectors":
		return ledgerlog.CheckVectors(path, report)
	case "answers":
		recording, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return ledgerlog.CheckRecording(recording, report)
	}
	return fmt.Errorf("no command %q", command)
}
