/* The decisions of bpf/thin.h on the host: reads events, writes the verdict and the whole state after each. */
#include <stdio.h>
#include <string.h>

#include "../bpf/thin_words.h"

int main(void)
{
	struct thin_told told;
	struct thin_flow flow;
	struct thin_uplink uplink;
	u64 words[THIN_WORDS];

	memset(&flow, 0, sizeof(flow));
	memset(&uplink, 0, sizeof(uplink));
	while (fread(&told, sizeof(told), 1, stdin) == 1) {
		thin_happen(&flow, &uplink, &told, words);
		fwrite(words, sizeof(words), 1, stdout);
	}
	return 0;
}
