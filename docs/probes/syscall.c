/* Independent cost of system calls: syscall FILE TRIALS -> median ns per call of each.
   cc -O2 -o syscall syscall.c; glibc's syscall(2), 200,000 calls a trial, on the last allowed CPU;
   FILE must be cached and have a byte at least. The empty loop is taken off. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1e9+t.tv_nsec;}
static int cmp(const void*a,const void*b){double x=*(double*)a,y=*(double*)b;return x<y?-1:x>y;}
static long raw(long number,long a,long b,long c,long d){long r;register long r10 __asm__("r10")=d;
  __asm__ volatile("syscall":"=a"(r):"a"(number),"D"(a),"S"(b),"d"(c),"r"(r10):"rcx","r11","memory");return r;}
#define CALLS 200000
#define TIME(name,...) do{double v[99];for(int t=0;t<trials;t++){double from=now();\
  for(int i=0;i<CALLS;i++){__asm__ volatile(""::"r"(i):"memory");__VA_ARGS__;}\
  v[t]=(now()-from)/CALLS;}qsort(v,trials,sizeof*v,cmp);printf("%-16s %8.1f ns, %.1f to %.1f\n",name,v[trials/2]-empty,v[0]-empty,v[trials-1]-empty);\
  if(!empty)empty=v[trials/2];}while(0)
int main(int argc,char**argv){
  if(argc<3)return 2;
  int trials=atoi(argv[2]);char byte;struct stat st;double empty=0;
  if(trials<1||trials>99)return 2;
  cpu_set_t set;sched_getaffinity(0,sizeof set,&set);int cpu=0;for(int i=0;i<CPU_SETSIZE;i++)if(CPU_ISSET(i,&set))cpu=i;
  CPU_ZERO(&set);CPU_SET(cpu,&set);sched_setaffinity(0,sizeof set,&set);
  int fd=open(argv[1],O_RDONLY);if(fd<0){perror(argv[1]);return 1;}
  TIME("empty loop",(void)0);
  TIME("no such call",syscall(1000));
  TIME("getppid",syscall(SYS_getppid));
  TIME("raw no such call",raw(1000,0,0,0,0));
  TIME("raw getppid",raw(SYS_getppid,0,0,0,0));
  TIME("raw fstat",raw(SYS_fstat,fd,(long)&st,0,0));
  TIME("lseek",syscall(SYS_lseek,fd,0,SEEK_SET));
  TIME("pread 1 byte",syscall(SYS_pread64,fd,&byte,1,0));
  TIME("fstat",syscall(SYS_fstat,fd,&st));
}
