#include <stdlib.h>
#define mem_malloc malloc
#define mem_free free
