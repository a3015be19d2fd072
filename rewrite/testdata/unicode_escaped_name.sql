SELECT count(*) FROM public.U&"us!0065rs" UESCAPE '!', U&"transaction\0073"
