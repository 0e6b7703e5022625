package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// program returns an ELF file that loads libraries by a loader, with only the sections that say so.
func program(loader string, libraries ...string) []byte {
	names := "\x00"
	var dynamic []elf.Dyn64
	for _, library := range libraries {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: uint64(len(names))})
		names += library + "\x00"
	}
	dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NULL)})
	const sectionNames = "\x00.dynamic\x00.dynstr\x00.interp\x00.shstrtab\x00"
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Ehsize: uint16(binary.Size(elf.Header64{})), Shentsize: uint16(binary.Size(elf.Section64{})), Shnum: 5, Shstrndx: 4,
	}
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_DYNAMIC), Link: 2, Size: uint64(binary.Size(dynamic)), Entsize: 16},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Size: uint64(len(names))},
		{Name: 18, Type: uint32(elf.SHT_PROGBITS), Size: uint64(len(loader) + 1)},
		{Name: 26, Type: uint32(elf.SHT_STRTAB), Size: uint64(len(sectionNames))},
	}
	if loader == "" { // a library
		sections[3].Name = 0
	}
	offset := uint64(header.Ehsize)
	for i := range sections[1:] {
		sections[i+1].Off = offset
		offset += sections[i+1].Size
	}
	header.Shoff = offset
	var content bytes.Buffer
	for _, part := range []any{header, dynamic, []byte(names), []byte(loader + "\x00"), []byte(sectionNames), sections} {
		_ = binary.Write(&content, binary.LittleEndian, part) // a buffer does not fail
	}
	return content.Bytes()
}
