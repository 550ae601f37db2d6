/* Independent pointer chase: chase BYTES huge|base TRIALS -> median ns per load.
   Sattolo in place, next pointer at the start of each 64-byte line, one whole lap as warm-up,
   then laps (or one long part of a lap) for at least 20 ms per trial. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sched.h>
#include <time.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1e9+t.tv_nsec;}
static uint64_t s;static uint64_t rnd(void){s^=s<<13;s^=s>>7;s^=s<<17;return s;}
static int cmp(const void*a,const void*b){double x=*(double*)a,y=*(double*)b;return x<y?-1:x>y;}
int main(int argc,char**argv){
  size_t bytes=strtoull(argv[1],0,0);int huge=!strcmp(argv[2],"huge");int trials=atoi(argv[3]);
  s=(uint64_t)now()|1;
  cpu_set_t set;sched_getaffinity(0,sizeof set,&set);int cpu=0;for(int i=0;i<CPU_SETSIZE;i++)if(CPU_ISSET(i,&set))cpu=i;
  CPU_ZERO(&set);CPU_SET(cpu,&set);sched_setaffinity(0,sizeof set,&set);
  size_t len=(bytes+(2<<20)-1)&~(size_t)((2<<20)-1);
  char*m=mmap(0,len+(4<<20),PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE,-1,0);
  m=(char*)(((uintptr_t)m+(2<<20)-1)&~(uintptr_t)((2<<20)-1));
  madvise(m,len,huge?MADV_HUGEPAGE:MADV_NOHUGEPAGE);
  memset(m,0,huge?len:bytes);
  size_t n=bytes/64;double v[99];
  for(int t=0;t<trials;t++){
    if(t==0||bytes<=(32u<<20)){
      for(size_t i=0;i<n;i++)*(void**)(m+i*64)=m+i*64;
      for(size_t i=n-1;i>0;i--){size_t j=rnd()%i;void*a=*(void**)(m+i*64);*(void**)(m+i*64)=*(void**)(m+j*64);*(void**)(m+j*64)=a;}
    }
    void**p=(void**)m;
    size_t warm=n<4000000?2*n:4000000;for(size_t i=0;i<warm;i++)p=(void**)*p;
    if((uintptr_t)p==1)puts("");
    size_t steps=16384;double e;
    for(;;){double a=now();for(size_t i=0;i<steps/32;i++){
#define R p=(void**)*p;
#define R8 R R R R R R R R
      R8 R8 R8 R8}
      e=now()-a;if((uintptr_t)p==1)puts("");
      if(e>20e6)break;steps*=e>5e6?(size_t)(25e6/e+1):4;}
    v[t]=e/steps;
  }
  qsort(v,trials,sizeof(double),cmp);printf("%.4f\n",v[trials/2]);
}
