/* Writes the two parts of a light skeleton: the instructions of the program that loads the others, and its data. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <bpf/skel_internal.h>

static const char *directory;

static void write_part(const char *name, const void *octets, size_t len)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "wb");
	if (!file || fwrite(octets, 1, len, file) != len || fclose(file))
		abort();
}

static int write_parts(struct bpf_load_and_run_opts *opts)
{
	write_part("thin.insns", opts->insns, opts->insns_sz);
	write_part("thin.data", opts->data, opts->data_sz);
	return -1;
}

#define bpf_load_and_run write_parts
#define u32 __u32
#define u64 __u64
#include SKELETON

int main(int count, char **words)
{
	struct thin *skeleton = calloc(1, sizeof(*skeleton));

	directory = words[count - 1];
	skeleton->ctx.sz = (char *)&skeleton->links - (char *)skeleton;
	/* As light.rs has it: 24 octets, 16 for each map, 4 for each program. */
	if (skeleton->ctx.sz != 24 + 5 * 16 + 3 * 4)
		abort();
	thin__load(skeleton);
	return 0;
}
