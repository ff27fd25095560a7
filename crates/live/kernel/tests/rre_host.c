/* The algorithm of bpf/rre.h on the host: reads events, writes the whole state after each. */
#include <stdio.h>
#include <string.h>

#include "../bpf/rre_words.h"

int main(void)
{
	struct rre_told event;
	struct rre_client client = {};
	struct rre rre;
	u64 words[RRE_WORDS];

	memset(&rre, 0, sizeof(rre));
	while (fread(&event, sizeof(event), 1, stdin) == 1) {
		rre_happen(&rre, &client, &event);
		rre_words(&rre, &client, words);
		fwrite(words, sizeof(words), 1, stdout);
	}
	return 0;
}
